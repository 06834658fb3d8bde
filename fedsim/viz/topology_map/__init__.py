"""A network as a picture: who stands where, who is linked to whom, and how loaded the air and the wires are."""
