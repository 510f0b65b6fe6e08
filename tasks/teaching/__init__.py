"""What trainings by a teacher share: small students (``distill``) and smaller models of a run (``compress``)."""
