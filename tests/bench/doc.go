// Package bench measures what access costs, side by side with its peers in the same run: the gateway's throughput
// against bare Garage and against nginx's TLS in front of the same Garage, the verification of a signature by itself,
// and STS exchanges against MinIO's. Ratios are what counts: client, gateway and Garage share the machine.
package bench
