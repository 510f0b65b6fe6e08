"""Fine-tuning on real data by onion and by Hugging Face, in one table: ``make results``, docs/results.md."""
