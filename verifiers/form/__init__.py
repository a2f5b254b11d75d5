"""Form: how a reply is written, whatever it says."""
