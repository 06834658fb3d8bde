"""What goes wrong: links, stations, servers and devices that fail, at planned times or by chance, and come back."""
