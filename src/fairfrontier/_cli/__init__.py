"""What the commands do, one module a step; `fairfrontier._cli.app` has the options."""
