// Package chart draws figures as SVG that pages hold. Colours are those of the page's style, light and dark, so nothing of them
// is here; what is drawn is said in words too, for whoever does not see it.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Series is a line of points in the order of time.
type Series struct {
	Name   string
	Points []Point
}

// Lines are series over the same time, and what bounds them.
type Lines struct {
	Title    string
	From, To time.Time
	Step     time.Duration // between two points; where more is missing, the line is broken
	Series   []Series      // four at most have a colour of their own
	Limit    float64       // a line across; 0 for none
	LimitIs  string
	Format   func(float64) string
}

// The drawing, in units of its own.
const (
	width, height         = 720, 170
	left, right           = 76, 8
	top, bottom           = 10, 24
	innerWidth, innerHigh = width - left - right, height - top - bottom
)

// SVG draws the lines.
func (c Lines) SVG() template.HTML {
	var b strings.Builder
	most := c.most()
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height,
		template.HTMLEscapeString(c.words(most)))
	for i := range 3 {
		value := most * float64(i) / 2
		y := c.y(value, most)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, width-right, y, y)
		fmt.Fprintf(&b, `<text class="axis" x="%d" y="%.1f" text-anchor="end">%s</text>`, left-6, y+4,
			template.HTMLEscapeString(c.Format(value)))
	}
	for i := range 5 {
		at := c.From.Add(c.To.Sub(c.From) * time.Duration(i) / 4)
		anchor := [...]string{"start", "middle", "middle", "middle", "end"}[i]
		fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%d" text-anchor="%s">%s</text>`, c.x(at), height-6, anchor,
			at.UTC().Format("2 Jan"))
	}
	for i, s := range c.Series {
		fmt.Fprintf(&b, `<path class="line l%d" d="%s"><title>%s</title></path>`, i+1, c.path(s, most),
			template.HTMLEscapeString(s.Name))
	}
	if c.Limit > 0 && c.Limit <= most {
		y := c.y(c.Limit, most)
		fmt.Fprintf(&b, `<line class="limit" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, width-right, y, y)
	}
	b.WriteString("</svg>")
	b.WriteString(c.legend())
	return template.HTML(b.String()) //nolint:gosec // every text in it is escaped above
}

// most is the end of the scale: the highest value, or the limit where that is not far above, with some room.
func (c Lines) most() float64 {
	most := 0.0
	for _, s := range c.Series {
		for _, p := range s.Points {
			most = max(most, p.Value)
		}
	}
	if c.Limit > 0 && c.Limit < 4*most {
		most = max(most, c.Limit)
	}
	if most == 0 {
		return 1
	}
	return most * 1.05
}

func (c Lines) x(at time.Time) float64 {
	return left + innerWidth*float64(at.Sub(c.From))/float64(max(c.To.Sub(c.From), 1))
}

func (c Lines) y(value, most float64) float64 { return top + innerHigh*(1-value/most) }

// path is a line that is broken where points are missing.
func (c Lines) path(s Series, most float64) string {
	var b strings.Builder
	var last time.Time
	for i, p := range s.Points {
		command := "L"
		if i == 0 || p.At.Sub(last) > c.Step+c.Step/2 {
			command = "M"
		}
		last = p.At
		fmt.Fprintf(&b, "%s%.1f %.1f", command, c.x(p.At), c.y(p.Value, most))
		if next := i + 1; command == "M" && (next == len(s.Points) || s.Points[next].At.Sub(p.At) > c.Step+c.Step/2) {
			b.WriteString("h.1") // a point by itself is seen, too
		}
	}
	return b.String()
}

// words says what the drawing shows.
func (c Lines) words(most float64) string {
	words := c.Title
	for _, s := range c.Series {
		if len(s.Points) == 0 {
			continue
		}
		high := math.Inf(-1)
		for _, p := range s.Points {
			high = max(high, p.Value)
		}
		words += fmt.Sprintf("; %s: at most %s, at last %s", s.Name, c.Format(high), c.Format(s.Points[len(s.Points)-1].Value))
	}
	if c.Limit > 0 {
		words += fmt.Sprintf("; %s: %s", c.LimitIs, c.Format(c.Limit))
	}
	return words
}

func (c Lines) legend() string {
	var b strings.Builder
	b.WriteString(`<p class="legend">`)
	for i, s := range c.Series {
		fmt.Fprintf(&b, `<span class="k%d">%s</span>`, i+1, template.HTMLEscapeString(s.Name))
	}
	if c.Limit > 0 {
		fmt.Fprintf(&b, `<span class="k0">%s: %s</span>`, template.HTMLEscapeString(c.LimitIs),
			template.HTMLEscapeString(c.Format(c.Limit)))
	}
	b.WriteString("</p>")
	return b.String()
}

// Day is one day of a strip.
type Day struct {
	Text string // what it was, for whoever points at it or does not see it
	Tone string // "good", "warning", "bad", or empty for nothing
}

// Strip draws days in a row, the oldest first.
func Strip(title string, days []Day) template.HTML {
	const side, gap, high = 20, 4, 28
	var b strings.Builder
	counts := map[string]int{}
	for _, d := range days {
		counts[d.Tone]++
	}
	fmt.Fprintf(&b, `<svg class="strip" viewBox="0 0 %d %d" role="img" aria-label="%s">`, max(1, len(days))*(side+gap), high,
		template.HTMLEscapeString(fmt.Sprintf("%s: %d days are good, %d want a look, %d have nothing", title, counts["good"],
			counts["warning"]+counts["bad"], counts[""])))
	for i, d := range days {
		x := i * (side + gap)
		fmt.Fprintf(&b, `<g class="day %s"><title>%s</title>`, template.HTMLEscapeString(d.Tone), template.HTMLEscapeString(d.Text))
		switch d.Tone {
		case "good":
			fmt.Fprintf(&b, `<rect x="%d" y="4" width="%d" height="%d" rx="4"/>`, x, side, side)
		case "":
			fmt.Fprintf(&b, `<rect class="none" x="%d.5" y="4.5" width="%d" height="%d" rx="4"/>`, x, side-1, side-1)
		default:
			fmt.Fprintf(&b, `<path d="M%d 4l%d %dH%dz"/>`, x+side/2, side/2, side, x)
		}
		b.WriteString("</g>")
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // every text in it is escaped above
}
