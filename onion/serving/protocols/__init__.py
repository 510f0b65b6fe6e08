"""How clients speak to a service; each file is one protocol, and gives the routes of it."""
