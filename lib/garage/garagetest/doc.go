// Package garagetest starts real Garage clusters on loopback for tests. Each node has its own loopback address, so that
// tests of several packages can run at once. The binary is the one that the environment variable GARAGE_BINARY names,
// else the cached build; a test fails, and never skips, when there is none.
package garagetest
