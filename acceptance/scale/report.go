package main

import (
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/proc"
)

// figure is what was measured of a size.
type figure struct {
	what  string
	value float64
	unit  unit
	// most is how many times as much it may be of the largest size as of the smallest; 0: as much as it likes.
	most float64
}

type unit int

const (
	milliseconds unit = iota
	aSecond           // so many
	bytes
	number
)

func (f figure) String() string {
	switch f.unit {
	case milliseconds:
		return short(f.value) + " ms"
	case aSecond:
		return short(f.value) + "/s"
	case bytes:
		return short(f.value/1e6) + " MB"
	}
	return short(f.value)
}

// short has three digits, or all before the point.
func short(value float64) string {
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

func took(what string, d time.Duration, most float64) figure {
	return figure{what, float64(d) / float64(time.Millisecond), milliseconds, most}
}

// column has the figures of one size, in the order of the parts.
type column struct {
	size
	figures []figure
}

// report has a column for each size, from the smallest to the largest.
type report []column

// growth is how many times as much the figure of a row is in the last column as in the first.
func (r report) growth(row int) float64 {
	first, last := r[0].figures[row], r[len(r)-1].figures[row]
	if first.value == 0 {
		return math.NaN()
	}
	if last.unit == aSecond {
		return first.value / last.value
	}
	return last.value / first.value
}

func (r report) grows(row int) bool {
	most := r[0].figures[row].most
	return most > 0 && !(r.growth(row) <= most)
}

func (r report) broken() bool {
	if len(r) == 0 {
		return false
	}
	for row := range r[0].figures {
		if r.grows(row) {
			return true
		}
	}
	return false
}

const head = `# What it costs when it grows

Measured by ` + "`make scale`" + ` on %s, with %s.
`

const ofInstallation = `
## An installation

Real hosts (an API host, a dashboard, two batch hosts with 32 workers each) and a real PostgreSQL for the metadata, with the
settings that it comes with, on one machine. The database servers are agents in memory behind the agents' protocol. In all sizes
there are %d accounts and %d servers; one account has a tenth of all databases, a tenth of all are previews, and each has seven
backups, %d operations and as many entries of the log.

`

const ofServer = `
## One server

An API host, a batch host, and one real server: an agent, PostgreSQL and PgBouncer. Each database has six logins, three of which
are additional roles. No backup is due.

`

func anInstallation(r report) string {
	if len(r) == 0 {
		return ""
	}
	first := r[0]
	return fmt.Sprintf(ofInstallation, first.accounts, first.servers, first.history/first.databases) + r.markdown()
}

func oneServer(r report) string {
	if len(r) == 0 {
		return ""
	}
	return ofServer + r.markdown()
}

// markdown is a table, and a drawing of what is idle.
func (r report) markdown() string {
	first := r[0]
	names := make([]string, len(r))
	for i, c := range r {
		names[i] = fmt.Sprintf("%d databases", c.databases)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "| | %s | growth | at most |\n| - |%s - | - |\n", strings.Join(names, " | "), strings.Repeat(" - |", len(r)))
	for row, f := range first.figures {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = "-"
			if row < len(c.figures) {
				cells[i] = c.figures[row].String()
			}
		}
		if row >= len(r[len(r)-1].figures) {
			continue // it was not measured
		}
		most := ""
		if f.most > 0 {
			most = fmt.Sprintf("%.2g", f.most)
		}
		if r.grows(row) {
			most += " **missed**"
		}
		growth := ""
		if times := r.growth(row); !math.IsNaN(times) {
			growth = fmt.Sprintf("%.2f", times)
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", f.what, strings.Join(cells, " | "), growth, most)
	}
	out.WriteString(r.drawn())
	return out.String()
}

// idleMinute begins what the figures of idle hosts are called.
const idleMinute = "an idle minute"

// drawn shows what idle hosts take, by size.
func (r report) drawn() string {
	var out strings.Builder
	var x []string
	for _, c := range r {
		x = append(x, fmt.Sprintf("%q", fmt.Sprint(c.databases)))
	}
	for row, f := range r[0].figures {
		if !strings.HasPrefix(f.what, idleMinute) || f.unit != milliseconds || row >= len(r[len(r)-1].figures) {
			continue
		}
		var y []string
		for _, c := range r {
			y = append(y, fmt.Sprintf("%.0f", c.figures[row].value))
		}
		fmt.Fprintf(&out, "  line [%s]\n", strings.Join(y, ", "))
	}
	if out.Len() == 0 {
		return ""
	}
	return "\nThe processor time of an idle minute, by databases, each line as it stands in the table:\n\n" +
		"```mermaid\nxychart-beta\n  x-axis [" + strings.Join(x, ", ") + "]\n  y-axis \"ms\"\n" + out.String() + "```\n"
}

func machine() string { return fmt.Sprintf("%d cores (%s)", runtime.NumCPU(), proc.Processor()) }

func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "sources of no commit"
	}
	return "commit `" + strings.TrimSpace(string(text)) + "`"
}
