"""What pretraining is good for, on two cores: ``make pretraining``, docs/pretraining_study.md."""
