package chart_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/adapters/dashboard/chart"
)

var began = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func hours(values ...float64) (list []chart.Point) {
	for i, v := range values {
		if v >= 0 {
			list = append(list, chart.Point{At: began.Add(time.Duration(i) * time.Hour), Value: v})
		}
	}
	return list
}

func lines(series ...chart.Series) chart.Lines {
	return chart.Lines{
		Title: "Size", From: began, To: began.Add(30 * 24 * time.Hour), Step: time.Hour, Series: series,
		Format: func(v float64) string { return fmt.Sprintf("%.0f B", v) },
	}
}

// An hour that nobody saw breaks the line; it is no zero.
func TestAGapBreaksTheLine(t *testing.T) {
	svg := string(lines(chart.Series{Name: "bytes", Points: hours(1, 2, -1, -1, 3, 4)}).SVG())
	_, path, _ := strings.Cut(svg, ` d="`)
	path, _, _ = strings.Cut(path, `"`)
	if strings.Count(path, "M") != 2 || strings.Count(path, "L") != 2 {
		t.Errorf("the path is %s", path)
	}
}

// What is drawn is well-formed, says in words what it shows, and lies within its frame, whatever the figures and names.
func TestDrawings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.RuneFrom([]rune(`<>"'&;`), unicode.L, unicode.P, unicode.S)).Draw(t, "name")
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e18), 0, 50).Draw(t, "values")
		c := lines(chart.Series{Name: name, Points: hours(values...)})
		c.Title, c.LimitIs, c.Limit = name, name, rapid.Float64Range(0, 1e18).Draw(t, "limit")
		for _, drawn := range []string{string(c.SVG()), string(chart.Strip(name, []chart.Day{{Text: name, Tone: "good"},
			{Text: name, Tone: "bad"}, {}}))} {
			if strings.Contains(drawn, "NaN") || strings.Contains(drawn, "Inf") {
				t.Fatalf("no number: %s", drawn)
			}
			d := xml.NewDecoder(strings.NewReader("<x>" + drawn + "</x>"))
			elements := 0
			for {
				token, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%v: %s", err, drawn)
				}
				if e, is := token.(xml.StartElement); is {
					elements++
					if e.Name.Local == "script" {
						t.Fatal("a name has become an element")
					}
				}
			}
			if elements < 4 {
				t.Fatalf("only %d elements", elements)
			}
		}
	})
}
