"""Breaking things under load: clients that write down every call, faults, and a checker that compares both with the database."""
