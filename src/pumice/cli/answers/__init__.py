"""The cluster or the record that a question is asked about, and answers as text."""
