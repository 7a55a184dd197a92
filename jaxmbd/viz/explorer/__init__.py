"""The explorer: numbers of a mechanism as sliders, its curves and its picture at once.

`ranges` says which numbers move how far, `experiments` what is observed while nobody has said so,
`live_curves` compiles numbers to curves and to their derivatives, `goals` what better means,
`exploration` is the design at hand with its history, without any page; `page` and the files beside
it show it in a browser.
"""
