"""What can be asked of the service, each as a flow: neither blocking nor asynchronous."""
