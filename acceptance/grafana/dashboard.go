// Package grafana makes docs/operate/grafana.json, a dashboard with every metric that docs/operate/monitoring.md describes.
package grafana

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/acceptance/alerts"
)

// The widths and heights are in units of Grafana's grid, which is 24 wide.
const (
	gridWidth   = 24
	panelWidth  = 8
	panelHeight = 7
	perRow      = gridWidth / panelWidth
)

// The types of Grafana's JSON have the fields that this dashboard sets.
type dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Timezone      string      `json:"timezone"`
	Refresh       string      `json:"refresh"`
	Time          span        `json:"time"`
	Templating    variables   `json:"templating"`
	Panels        []gridPanel `json:"panels"`
}

type span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type variables struct {
	List []variable `json:"list"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	Datasource *datasource `json:"datasource,omitempty"`
	Refresh    int         `json:"refresh"`
	Sort       int         `json:"sort"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue,omitempty"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type gridPanel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	GridPos     place          `json:"gridPos"`
	Datasource  *datasource    `json:"datasource,omitempty"`
	FieldConfig *fieldConfig   `json:"fieldConfig,omitempty"`
	Options     map[string]any `json:"options,omitempty"`
	Targets     []target       `json:"targets,omitempty"`
	Collapsed   *bool          `json:"collapsed,omitempty"` // of a row
	Panels      []gridPanel    `json:"panels,omitempty"`    // of a row that is collapsed
}

type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit   string         `json:"unit"`
	Min    *int           `json:"min,omitempty"`
	Custom map[string]any `json:"custom,omitempty"`
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Format       string `json:"format,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
}

var prometheus = &datasource{Type: "prometheus", UID: "${datasource}"}

// Make writes the dashboard. It is an error where the page has a metric without a panel, or a panel one that the page has not, or
// a label that the metric has not.
func Make(page string) ([]byte, error) {
	documented := map[string]alerts.Metric{}
	for _, m := range alerts.Documented(page) {
		documented[m.Name] = m
	}
	d := dashboard{
		UID: "pgherd", Title: "pgherd", Tags: []string{"pgherd"}, SchemaVersion: 39, Timezone: "browser", Refresh: "30s",
		Time: span{"now-6h", "now"}, Templating: variables{[]variable{
			{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus", Refresh: 1},
			{
				Name: "server", Label: "Server", Type: "query", Query: "label_values(pgherd_server_agent_up, server)",
				Datasource: prometheus, Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".*",
			},
		}},
	}
	shown, id, y := map[string]bool{}, 0, 0
	for i, r := range rows {
		id++
		collapsed := i >= openRows
		row := gridPanel{ID: id, Type: "row", Title: r.title, GridPos: place{1, gridWidth, 0, y}, Collapsed: &collapsed}
		y++
		var panels []gridPanel
		for j, p := range r.panels {
			id++
			made, err := p.make(documented, shown)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", r.title, p.title, err)
			}
			made.ID, made.GridPos = id, place{panelHeight, panelWidth, j % perRow * panelWidth, y + j/perRow*panelHeight}
			panels = append(panels, made)
		}
		if collapsed {
			row.Panels = panels
			d.Panels = append(d.Panels, row)
			continue
		}
		d.Panels = append(append(d.Panels, row), panels...)
		y += (len(panels) + perRow - 1) / perRow * panelHeight
	}
	for _, m := range alerts.Documented(page) {
		if !shown[m.Name] {
			return nil, fmt.Errorf("no panel shows %s", m.Name)
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// make is the panel in Grafana's JSON. Its description is what the page says of its metrics.
func (p panel) make(documented map[string]alerts.Metric, shown map[string]bool) (gridPanel, error) {
	made := gridPanel{Type: "timeseries", Title: p.title, Datasource: prometheus}
	var texts []string
	var unit string
	for i, q := range p.queries {
		if q.metric != "" {
			m, there := documented[q.metric]
			if !there {
				return made, fmt.Errorf("the page does not describe %s", q.metric)
			}
			for _, l := range q.by {
				if !slices.Contains(m.Labels, l) && l != "instance" {
					return made, fmt.Errorf("%s has no label %s", q.metric, l)
				}
			}
			shown[q.metric] = true
			if text := q.metric + ": " + m.Text; !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		t := target{RefID: string(rune('A' + i)), Expr: q.expr(), LegendFormat: q.legend()}
		if p.table {
			t.Format, t.Instant = "table", true
		}
		made.Targets = append(made.Targets, t)
		if unit == "" {
			unit = q.unit()
		}
	}
	made.Description = strings.Join(texts, "\n\n")
	made.FieldConfig = &fieldConfig{Defaults: fieldDefaults{Unit: unit}, Overrides: []any{}}
	if p.table {
		made.Type = "table"
		return made, nil
	}
	made.FieldConfig.Defaults.Min = new(0)
	made.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 8, "showPoints": "never"}
	made.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom"},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return made, nil
}

// Query is what a line of a panel asks Prometheus for, and by which labels it names its lines.
type Query struct {
	Expr string
	By   []string
}

// Queries lists those of the dashboard, with what Grafana puts in for its variables.
func Queries(rateInterval string) (list []Query) {
	in := strings.NewReplacer("$__rate_interval", rateInterval, "$server", ".*")
	for _, r := range rows {
		for _, p := range r.panels {
			for _, q := range p.queries {
				list = append(list, Query{in.Replace(q.expr()), q.by})
			}
		}
	}
	return list
}
