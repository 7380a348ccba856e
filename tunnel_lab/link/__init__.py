"""The emulated link between the hosts' network namespaces: kernel netem where there is one, else the relay."""
