package metrics

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/metrics"
)

// Publisher puts conditions where people read them.
type Publisher interface {
	Publish(ctx context.Context, conditions []module.Condition) error
}

// Conditions passes the conditions on and tells them as a metric, too. Safe for concurrent use.
type Conditions struct {
	Next Publisher

	mu   sync.Mutex
	last []module.Condition
}

// Publish remembers what is told, also when it cannot be told to the Module.
func (c *Conditions) Publish(ctx context.Context, conditions []module.Condition) error {
	c.mu.Lock()
	c.last = slices.Clone(conditions)
	c.mu.Unlock()
	return c.Next.Publish(ctx, conditions)
}

var condition = describe(metrics.Condition)

// Describe tells the metric.
func (*Conditions) Describe(to chan<- *prometheus.Desc) { to <- condition }

// Collect tells the conditions as they were told last.
func (c *Conditions) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.last {
		if each.Reason == "" {
			continue // nobody has an opinion yet
		}
		status := "False"
		if each.OK {
			status = "True"
		}
		to <- gauge(condition, 1, each.Type, status, each.Reason)
	}
}
