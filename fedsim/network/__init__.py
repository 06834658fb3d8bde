"""Links, cells and routes: how long a message takes on shared media, and how many bytes it costs on each hop."""
