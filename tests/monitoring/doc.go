// Package monitoring tests what the module hands to Prometheus and Grafana: the alerts with promtool, and every query of
// alerts and dashboards against the metrics that the documentation declares, which is made from the code.
package monitoring
