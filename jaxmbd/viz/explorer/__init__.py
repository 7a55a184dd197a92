"""The explorer: numbers of a mechanism as sliders, its curves and its picture at once.

`exploration` is a design with its history, without a page, and says which numbers move how far;
`experiments` is what is observed by default; `live_curves` compiles curves as functions of the
numbers, with derivatives, and says what a better curve is; `page` shows that in a browser.
"""
