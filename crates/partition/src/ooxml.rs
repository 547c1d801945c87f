//! What the Office Open XML formats share: the ZIP container within limits, relationships, XML events.
