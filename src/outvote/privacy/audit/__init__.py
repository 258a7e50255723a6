"""`outvote audit`: a real fleet is watched from outside and from inside, and all that is seen is searched."""
