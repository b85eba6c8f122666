"""The columns of each table, with units, and the rows behind them."""
