package bucket_test

import "time"

const (
	waitFor = 30 * time.Second
	tick    = 100 * time.Millisecond
)
