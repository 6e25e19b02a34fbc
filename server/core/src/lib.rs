//! Domain and ports of Sessionplane.
