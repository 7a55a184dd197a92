"""The explorer: numbers of a mechanism as sliders, its curves and its picture at once.

`exploration` is the design at hand with its history, without any page, and says which numbers move
how far; `experiments` is what is observed by default; `live_curves` compiles numbers to curves and
to their derivatives, and says what a better curve is; `page` and the files beside it show all that
in a browser.
"""
