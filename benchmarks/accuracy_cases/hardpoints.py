"""Published hardpoints of suspension corners and steering linkages, without results.

Only kinematics can be compared. A corner's wheel carrier is held by five distances (an arm counts
for two, a link or track rod for one), or by three and the strut's line. These conditions and the
height of the wheel centre are solved here for the carrier's pose by Newton's method, and compared
with the assembled mechanism. A rack moves by the pinion's radius times its angle, and the points
of a Pitman-arm linkage follow from two circles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.report import Row, compare, failed, unsupported
from jaxmbd import zoo
from jaxmbd.spatial.rotations import quaternion_step, rotation_matrix

TRAVELS = (-0.03, 0.03)  # of the wheel's centre [m]
ALLOWED = 1e-9  # [m]
Z = (0.0, 0.0, 1.0)


def detect(data: dict[str, Any]) -> bool:
    return "template_joints" in data and isinstance(data.get("data"), dict)


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    rows = []
    for path, entry in data["data"].items():
        case = Path(path).stem
        template = entry.get("Template") or ("MacPhersonStrut" if "points" in entry else None)
        try:
            if template in CORNERS:
                rows += _corner(case, *CORNERS[template](entry))
            elif template in STEERING:
                rows += STEERING[template](case, entry)
            else:
                rows.append(unsupported(case, f"no mechanism is built for {template!r}"))
        except Exception as error:  # one bad entry must not hide the others
            rows.append(failed(case, f"{type(error).__name__}: {error}".splitlines()[0]))
    return rows


# Corners -----------------------------------------------------------------------------------------


def _arm(part: dict[str, Any], name: str) -> dict[str, Any]:
    keys = {"front": "Location Chassis Front", "rear": "Location Chassis Back"}
    return {f"{name}_{end}": part[key] for end, key in keys.items()} | {
        f"{name}_ball": part["Location Upright"]
    }


def _track_rod(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "tierod_inboard": part["Location Chassis"],
        "tierod_outboard": part["Location Upright"],
    }


ROD = ("tierod_inboard", "tierod_outboard")


def _double_wishbone(e: dict[str, Any]) -> Any:
    p = _arm(e["Upper Control Arm"], "upper_arm") | _arm(e["Lower Control Arm"], "lower_arm")
    p |= _track_rod(e["Tierod"]) | {"wheel_centre": e["Spindle"]["COM"]}
    rods = [(f"{a}_{end}", f"{a}_ball") for a in ("upper_arm", "lower_arm") for end in ENDS]
    return zoo.double_wishbone, p, [*rods, ROD], None


ENDS = ("front", "rear")


def _multi_link(e: dict[str, Any]) -> Any:
    p = _arm(e["Upper Arm"], "upper_arm") | _track_rod(e["Tierod"])
    p["wheel_centre"] = e["Spindle"]["COM"]
    rods = [(f"upper_arm_{end}", "upper_arm_ball") for end in ENDS]
    for name, key in (("lateral", "Lateral"), ("trailing", "Trailing Link")):
        p[f"{name}_inboard"] = e[key]["Location Chassis"]
        p[f"{name}_ball"] = e[key]["Location Upright"]
        rods.append((f"{name}_inboard", f"{name}_ball"))
    return zoo.multi_link, p, [*rods, ROD], None


def _macpherson(e: dict[str, Any]) -> Any:
    if "points" in e:
        x = e["points"]
        p = dict(lower_arm_front=x["LCA_F"], lower_arm_rear=x["LCA_B"], lower_arm_ball=x["LCA_U"])
        p |= dict(tierod_inboard=x["TIEROD_C"], tierod_outboard=x["TIEROD_U"])
        p |= dict(strut_top=x["SPRING_C"], strut_bottom=x["SPRING_U"], wheel_centre=x["SPINDLE"])
    else:
        p = _arm(e["Control Arm"], "lower_arm") | _track_rod(e["Tierod"])
        p |= dict(
            strut_top=e["Spring"]["Location Chassis"],
            strut_bottom=e["Spring"]["Location Upright"],
            wheel_centre=e["Spindle"]["COM"],
        )
    rods = [(f"lower_arm_{end}", "lower_arm_ball") for end in ENDS]
    return zoo.macpherson, p, [*rods, ROD], ("strut_top", "strut_bottom")


CORNERS = {
    "DoubleWishbone": _double_wishbone,
    "DoubleWishboneReduced": _double_wishbone,
    "MultiLink": _multi_link,
    "MacPhersonStrut": _macpherson,
}


def _corner(case: str, build: Any, points: dict[str, Any], rods: Any, strut: Any) -> list[Row]:
    points = {n: np.asarray(x, float) for n, x in points.items()}
    mech = build(points=points)
    drawn = mbd.assemble(mech)
    rows = [
        compare(case, "closes as drawn", drawn.residual, 0.0, allowed=1e-12),
        compare(case, "dof", mbd.mobility(mech, drawn.q).dof, 2, allowed=0.0, basis="exact"),
    ]
    key = mbd.PointCoordinate("upright", "wheel_centre", "z")
    ours, theirs = [], []
    for travel in TRAVELS:
        height = points["wheel_centre"][2] + travel
        q = mbd.assemble(mech, known={key: height, "rev_spindle": 0.0}).q
        pose = mbd.poses(mech, q)["upright"]
        seen = {n: mbd.point_position(mech, q, "upright", n) for n in ("wheel_centre", ROD[1])}
        ours.append([*seen.values(), pose.rotation[:, 1]])
        turn, shift = _pose(points, rods, strut, height)
        moved = [turn @ points[n] + shift for n in seen]
        theirs.append([*moved, turn[:, 1]])
    for i, name in enumerate(("wheel_centre", "track rod", "axle direction")):
        a, b = ([x[i] for x in values] for values in (ours, theirs))
        rows.append(compare(case, f"{name} at ±30 mm", a, b, allowed=ALLOWED, basis="five rods"))
    return rows


def _pose(points: dict[str, Any], rods: Any, strut: Any, height: float) -> tuple[Any, Any]:
    """Rotation and displacement of the carrier that keep its distances, by Newton's method."""

    def errors(p: Any, shift: Any) -> Any:
        turn = rotation_matrix(p)
        out = [(turn @ points["wheel_centre"] + shift)[2] - height]
        for inner, outer in rods:
            now = turn @ points[outer] + shift - points[inner]
            was = points[outer] - points[inner]
            out.append((now @ now - was @ was) / (2.0 * np.linalg.norm(was)))
        if strut:  # the chassis point stays on the carrier's line
            line = points[strut[0]] - points[strut[1]]
            now = turn.T @ (points[strut[0]] - shift) - points[strut[1]]
            for axis in np.linalg.svd(line[None])[2][1:]:
                out.append(axis @ now)
        return jnp.stack(out)

    def moved(p: Any, shift: Any, change: Any) -> Any:
        return errors(quaternion_step(p, change[:3]), shift + change[3:])

    slope = jax.jit(jax.jacfwd(moved, argnums=2))
    p, shift = jnp.array([1.0, 0.0, 0.0, 0.0]), jnp.zeros(3)
    for _ in range(20):
        change = -np.linalg.solve(slope(p, shift, jnp.zeros(6)), errors(p, shift))
        p, shift = quaternion_step(p, jnp.asarray(change[:3])), shift + change[3:]
    return rotation_matrix(p), shift


# Steering ----------------------------------------------------------------------------------------


def _rack(case: str, e: dict[str, Any]) -> list[Row]:
    radius, angle = e["Pinion"]["Radius"], np.deg2rad(e["Pinion"]["Maximum Angle (deg)"])
    mech = mbd.Mechanism(
        {
            "rack": mbd.Body(e["Steering Link"]["Mass"], (0, 0, 0), e["Steering Link"]["Inertia"]),
            "pinion": mbd.Body(0.0, (0, 0, 0), 1e-3),
        },
        {
            "rail": mbd.Prismatic("ground", "rack", (0, 0, 0), (0, 1, 0)),
            "column": mbd.Revolute("ground", "pinion", (0, 0, 0), Z),
        },
        couplings={"teeth": mbd.RackAndPinion("column", "rail", radius)},
    )
    q = mbd.assemble(mech, known={"column": angle}).q
    travel = mbd.poses(mech, q)["rack"].position[1]
    return [
        compare(case, "rack = pinion radius × angle", travel, radius * angle, allowed=1e-15),
        compare(case, "dof", mbd.mobility(mech).dof, 1, allowed=0.0, basis="exact"),
    ]


def _pitman_arm(case: str, e: dict[str, Any]) -> list[Row]:
    def body(part: dict[str, Any]) -> mbd.Body:
        return mbd.Body(part["Mass"], part["COM"], part["Moments of Inertia"])

    hinge, cross, idler = (e[f"{n} Joint"] for n in ("Revolute", "Universal", "Revolute-Spherical"))
    axes = cross["Direction Arm"], cross["Direction Link"]
    mech = mbd.Mechanism(
        {"arm": body(e["Pitman Arm"]), "link": body(e["Steering Link"]), "idler": mbd.Body()},
        {
            "hinge": mbd.Revolute("ground", "arm", hinge["Location"], hinge["Direction"]),
            "cross": mbd.Universal("arm", "link", cross["Location"], *axes),
            "idler": mbd.Revolute("ground", "idler", idler["Location Chassis"], idler["Direction"]),
            "ball": mbd.Spherical("idler", "link", idler["Location Link"]),
        },
    )
    pivot, tip, far, end = (
        np.asarray(x, float)
        for x in (
            hinge["Location"],
            cross["Location"],
            idler["Location Chassis"],
            idler["Location Link"],
        )
    )
    most = np.deg2rad(hinge["Maximum Angle (deg)"])
    ours, theirs = [], []
    for angle in (-most, most):
        q = mbd.assemble(mech, known={"hinge": angle}).q
        ours.append(mbd.point_position(mech, q, "link", tuple(end)))
        c, s = np.cos(angle), np.sin(angle)
        arm = pivot + np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ (tip - pivot)
        theirs.append(_two_circles(arm, np.linalg.norm(end - tip), far, end))
    return [
        compare(case, "dof", mbd.mobility(mech).dof, 1, allowed=0.0, basis="exact"),
        compare(case, "link's idler end at full lock", ours, theirs, allowed=ALLOWED),
    ]


def _two_circles(a: Any, radius: float, b: Any, drawn: Any) -> Any:
    """The point at `radius` from `a`, and as far from `b` as drawn, on the drawn side; level."""
    other, line = np.linalg.norm(drawn - b), b - a
    distance = np.linalg.norm(line)
    along = (radius**2 - other**2 + distance**2) / (2.0 * distance)
    u = line / distance
    across = np.cross(Z, u)
    side = np.sign(across @ (drawn - a))
    return a + along * u + side * np.sqrt(radius**2 - along**2) * across


STEERING = {"RackPinion": _rack, "PitmanArm": _pitman_arm}
