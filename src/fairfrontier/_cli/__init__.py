"""What the commands do, one module a step; `fairfrontier.cli` has the options."""
