package web

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"time"
)

var functions = template.FuncMap{
	"has":  slices.Contains[[]string],
	"cell": shown,
	"part": func(s *Section, now time.Time) timed[*Section] { return timed[*Section]{s, now} },
	"rows": func(t *Table, now time.Time) timed[*Table] { return timed[*Table]{t, now} },
	"body": body,
}

// timed is a part of a page with the time of the page.
type timed[T any] struct {
	Of  T
	Now time.Time
}

// shownCell is a cell as it stands on a page, with the title of its column. A page has hundreds, and a template is slow where it
// calls functions, reads maps, or looks into embedded fields.
type shownCell struct {
	Title           string
	Number, Mono    bool
	Plain           bool // it has a text, and nothing else
	Text, Href, Sub string
	Exact, Ago      string
	Mark            *Mark
	Bar             *Bar
	Forms           []*Form
}

func shown(c *Cell, now time.Time) *shownCell {
	s := &shownCell{Text: c.Text, Href: c.Href, Mono: c.Mono, Sub: c.Sub, Mark: c.Mark, Bar: c.Bar, Forms: c.Forms}
	if c.At != nil {
		s.Exact, s.Ago = Exact(*c.At), ago(*c.At, now)
	}
	s.Plain = c.Href+c.Sub == "" && !c.Mono && c.At == nil && c.Mark == nil && c.Bar == nil && c.Forms == nil
	return s
}

// body is the cells of a table, row by row.
func body(t *Table, now time.Time) [][]*shownCell {
	rows := make([][]*shownCell, len(t.Rows))
	for i := range t.Rows {
		cells := t.Rows[i].Cells
		rows[i] = make([]*shownCell, len(cells))
		for k := range cells {
			rows[i][k] = shown(&cells[k], now)
			rows[i][k].Title, rows[i][k].Number = t.Columns[k].Title, t.Columns[k].Number
		}
	}
	return rows
}

// ago is a time in relation to now, as people say it.
func ago(at, now time.Time) string {
	switch d := now.Sub(at); {
	case d <= -time.Second:
		return "in " + Span(at.Sub(now))
	case d < 10*time.Second:
		return "just now"
	default:
		return Span(d) + " ago"
	}
}

// Span is a length of time as people say it, in its largest unit.
func Span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if n := int(d / unit.long); n >= 1 && (n > 1 || unit.long <= time.Minute) || unit.long == time.Second {
			if n == 1 {
				return "1 " + unit.name
			}
			return strconv.Itoa(n) + " " + unit.name + "s"
		}
	}
	return ""
}

// Exact is a time to the second.
func Exact(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// Bytes is a size as people read it.
func Bytes(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/step, 0
	for size >= step-.5 && unit < 5 { // it would be shown as the whole of the next unit
		size /= step
		unit++
	}
	digits := 1
	if size >= 99.95 {
		digits = 0
	}
	return fmt.Sprintf("%.*f %ciB", digits, size, "KMGTPE"[unit])
}

// pattern is a regular expression of a browser that only a text matches.
func pattern(text string) string { return regexp.QuoteMeta(text) }

func fieldID(form int, name string) string { return "f" + strconv.Itoa(form) + "-" + name }
