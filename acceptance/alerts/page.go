package alerts

import (
	"regexp"
	"slices"
	"strings"
)

// Metric is one that docs/operate/monitoring.md describes.
type Metric struct {
	Name   string
	Labels []string
	// Text is what the page says of it. Metrics of one row share it.
	Text string
}

var (
	rowOfMetrics = regexp.MustCompile("^\\| (`pgherd_[^|]*) \\| (.*) \\|$")
	metricInRow  = regexp.MustCompile("`(pgherd_\\w+)(?:\\{([\\w,]*)\\})?`")
	markup       = regexp.MustCompile("`|\\[([^\\]]*)\\]\\([^)]*\\)")
)

// Documented lists the metrics in the tables of a page. Those of agents have the label server besides what the page names.
func Documented(page string) (list []Metric) {
	for line := range strings.Lines(page) {
		row := rowOfMetrics.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if row == nil {
			continue
		}
		for _, m := range metricInRow.FindAllStringSubmatch(row[1], -1) {
			one := Metric{Name: m[1], Text: markup.ReplaceAllString(row[2], "$1")}
			one.Labels = slices.DeleteFunc(strings.Split(m[2], ","), func(l string) bool { return l == "" })
			if strings.HasPrefix(one.Name, "pgherd_agent_") {
				one.Labels = append(one.Labels, "server")
			}
			list = append(list, one)
		}
	}
	return list
}
