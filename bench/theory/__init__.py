"""The paper's propositions and estimators, checked on small runs of the real passes."""
