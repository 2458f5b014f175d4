"""What drafts of a model are worth: one generation a case, judged strictly, by the paper, and by nobody."""
