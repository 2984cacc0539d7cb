package grafana

import (
	"fmt"
	"slices"
	"strings"
)

// query is a line, or several by their labels, of a panel.
type query struct {
	// metric is shown by the labels in the way of how; without one, how is the expression.
	metric string
	how    how
	by     []string
	raw    string
}

// how a metric is shown.
type how int

const (
	// value is a gauge's. Every batch host measures the same metadata, so it is the greatest of all hosts'.
	value how = iota
	// perSecond is how fast a counter rises, of all hosts together.
	perSecond
	// ninetyNine is the time that 99 of 100 of a histogram do not take.
	ninetyNine
	// ago is for how long the time of a gauge is past, and ahead for how long it is to come.
	ago
	ahead
)

func gauge(metric string, by ...string) query { return query{metric: metric, by: by} }
func rate(metric string, by ...string) query  { return query{metric: metric, how: perSecond, by: by} }
func quantile(metric string, by ...string) query {
	return query{metric: metric, how: ninetyNine, by: by}
}
func since(metric string, by ...string) query { return query{metric: metric, how: ago, by: by} }
func until(metric string, by ...string) query { return query{metric: metric, how: ahead, by: by} }

// ofServers reports whether the metric is shown by server, of which some are chosen.
func (q query) ofServers() bool { return slices.Contains(q.by, "server") }

func (q query) expr() string {
	if q.raw != "" {
		return q.raw
	}
	selected := q.metric
	if q.how == ninetyNine {
		selected += "_bucket"
	}
	if q.ofServers() {
		selected += `{server=~"$server"}`
	}
	by := func(labels ...string) string {
		if len(labels) == 0 {
			return ""
		}
		return " by (" + strings.Join(labels, ", ") + ")"
	}
	switch q.how {
	case perSecond:
		return fmt.Sprintf("sum%s (rate(%s[$__rate_interval]))", by(q.by...), selected)
	case ninetyNine:
		labels := append([]string{"le"}, q.by...)
		return fmt.Sprintf("histogram_quantile(0.99, sum%s (rate(%s[$__rate_interval])))", by(labels...), selected)
	case ago:
		return fmt.Sprintf("time() - max%s (%s)", by(q.by...), selected)
	case ahead:
		return fmt.Sprintf("min%s (%s) - time()", by(q.by...), selected)
	case value:
	}
	return fmt.Sprintf("max%s (%s)", by(q.by...), selected)
}

// legend names a line by the metric, without what all of them begin with, and by its labels.
func (q query) legend() string {
	var parts []string
	for _, l := range q.by {
		parts = append(parts, "{{"+l+"}}")
	}
	name := strings.TrimPrefix(strings.TrimPrefix(q.metric, "pgherd_"), "agent_")
	return strings.TrimSpace(name + " " + strings.Join(parts, " "))
}

// unit is Grafana's name of the unit that the metric's name says.
func (q query) unit() string {
	has := func(part string) bool { return strings.Contains(q.metric, part) }
	switch {
	case q.how == ago, q.how == ahead, q.how == ninetyNine, strings.HasSuffix(q.metric, "_seconds"):
		return "s"
	case has("_bytes") && q.how == perSecond:
		return "Bps"
	case has("_bytes"):
		return "bytes"
	case has("_ratio"):
		return "percentunit"
	case q.how == perSecond:
		return "ops"
	}
	return "short"
}
