"""The cluster that a question is asked about, and answers as text."""
