"""What a model's drafts are worth: one generation a case, judged strictly, by the paper's gate, and by none."""
