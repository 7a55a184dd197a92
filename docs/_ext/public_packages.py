"""Packages whose public names have entries, in the order of the pages."""

PACKAGES = (
    *("jaxmbd", "jaxmbd.zoo", "jaxmbd.io", "jaxmbd.variables", "jaxmbd.observe", "jaxmbd.viz"),
    *("jaxmbd.tolerances", "jaxmbd.sampling", "jaxmbd.campaign", "jaxmbd.statistics"),
    *("jaxmbd.report", "jaxmbd.design", "jaxmbd.suspension", "jaxmbd.synthesis"),
    *("jaxmbd.cams", "jaxmbd.identification", "jaxmbd.ml", "jaxmbd.torch", "jaxmbd.lanes"),
    "jaxmbd.formulations",
    *("jaxmbd.formulations.particles", "jaxmbd.spatial", "jaxmbd.model", "jaxmbd.model.joints"),
    *("jaxmbd.model.forces", "jaxmbd.graph", "jaxmbd.kinematics", "jaxmbd.dynamics"),
    "jaxmbd.analysis",
)
