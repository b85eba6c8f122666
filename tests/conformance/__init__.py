"""The recorded decisions of the reference schedulers: `runner` and `tables` run them, the tests hold that all agree."""
