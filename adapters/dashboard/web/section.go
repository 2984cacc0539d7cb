package web

import (
	"html/template"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Section is a part of a page, in the order of its fields. While a page is open, each section is brought up to date by its ID.
type Section struct {
	ID    string // unique on the page; empty: it does not change while the page is open
	Title string
	Note  string
	Alert *Alert
	Facts []Fact
	Chart template.HTML // made by package chart
	Codes []Code
	Table *Table
	Empty *Empty
	Forms []*Form
	Main  *Link // as a button
	Links []Link
}

// Alert is something that must not be overlooked.
type Alert struct {
	Text string
	Code string // of the error; empty for none
	Good bool
}

// Fact is a name with what it is.
type Fact struct {
	Name string
	Cell
}

// Code is a text to be copied. A secret one is shown once.
type Code struct {
	Label, Text string
	Secret      bool
}

// Empty says what to do where there is nothing yet, and the command that does it.
type Empty struct {
	Text    string
	Command string
}

// Tone is how a status is to be taken. It is shown by a shape too, never by a colour alone.
type Tone string

// The tones.
const (
	Good    Tone = "good"
	Bad     Tone = "bad"
	Warning Tone = "warning"
	Busy    Tone = "busy"
	Neutral Tone = "neutral"
)

// Mark is a status.
type Mark struct {
	Text string
	Tone Tone
}

// Cell is one value. What is set of it is shown.
type Cell struct {
	Text  string
	Href  string
	Mono  bool
	Sub   string // smaller, below
	At    *time.Time
	Mark  *Mark
	Bar   *Bar
	Forms []*Form
	Key   int64 // by which a column of numbers is sorted
}

// Bar is a part of a whole.
type Bar struct {
	Percent int
	Text    string
	Tone    Tone
}

// Words is a cell with a text.
func Words(text string) Cell { return Cell{Text: text} }

// MonoText is a cell with something that is typed: a name, an address.
func MonoText(text string) Cell { return Cell{Text: text, Mono: true} }

// Time is a cell with a time; empty for nil.
func Time(at *time.Time) Cell {
	if at == nil {
		return Cell{Text: "–"}
	}
	return Cell{At: at, Key: at.UnixNano()}
}

// Form sends fields to an action.
type Form struct {
	Action string // the path
	Name   string // the action's name in the table
	Row    string // tells the forms of one action apart
	Submit string
	Fields []*Field
	Hidden []Pair
	Danger bool
	Inline bool   // one button, between other things
	Fold   string // what is to be opened before the form is seen; empty: it is seen
	Intro  string
	Get    bool // it only asks for another page
	// Passkey is "get" or "create" where a device is asked before the form is sent, with what Begin answers.
	Passkey, Begin string

	Open  bool
	Wrong *fault.Error // of no field
}

// Pair is a field that is not seen.
type Pair struct{ Name, Value string }

// Field is one input of a form, with its label.
type Field struct {
	Name, Label string
	Type        string // as of <input>; "select", "textarea", "checks" or "check"
	Value       string
	Values      []string // that are chosen, of "checks"
	Help        string
	Options     []Option
	Optional    bool
	Placeholder string
	Complete    string // what browsers may fill in
	Pattern     string
	Max         int
	Focus       bool

	Wrong string
	ID    string
}

// Option is a choice.
type Option struct{ Value, Text string }

// Fields that forms have beside their own.
const (
	confirmField = "confirm"
	rowField     = "row"
	onceField    = "once"
)

// Typed is the field in which a name is typed to confirm what cannot be undone.
func Typed(name string) *Field {
	return &Field{Name: confirmField, Label: "Type " + name + " to confirm", Pattern: pattern(name), Complete: "off"}
}

// Once makes a form that does the same however often it is sent: after going back, say, or when an answer was lost. The key is
// what Request.Once returns there.
func (f *Form) Once(key string) *Form {
	f.Hidden = append(f.Hidden, Pair{onceField, key})
	return f
}

// Once is the key of a form that was made with Form.Once.
func (r *Request) Once() string { return r.Field(onceField) }

// claim gives a failure to the form that it is of, with what was typed; secrets and codes are typed again.
func (r *Request) claim(v *View) {
	number := 0
	for _, s := range v.Sections {
		for _, f := range s.allForms() {
			number++
			f.number(number)
			if r.Failure != nil && r.Failure.Action == f.Name && r.Failure.Row == f.Row && !f.Inline {
				f.fill(r)
			}
		}
	}
}

// allForms are those of a section, and of its facts and its table.
func (s *Section) allForms() []*Form {
	list := slices.Clone(s.Forms)
	for _, f := range s.Facts {
		list = append(list, f.Forms...)
	}
	if s.Table == nil {
		return list
	}
	if s.Table.Filter != nil {
		list = append(list, s.Table.Filter)
	}
	for _, row := range s.Table.Rows {
		for _, c := range row.Cells {
			list = append(list, c.Forms...)
		}
	}
	return list
}

// number gives the fields of a form IDs that are unique on the page.
func (f *Form) number(n int) {
	for _, field := range f.Fields {
		field.ID = fieldID(n, field.Name)
	}
}

// fill shows a form as it was sent, with what was wrong.
func (f *Form) fill(r *Request) {
	r.Failure.claimed, f.Open = true, true
	left := []fault.Detail{}
	for _, d := range r.Failure.Err.Details {
		if field := f.field(d.Field); field != nil {
			field.Wrong = d.Issue
			continue
		}
		left = append(left, d)
	}
	if len(left) > 0 || len(r.Failure.Err.Details) == 0 {
		f.Wrong = r.Failure.Err
	}
	for _, field := range f.Fields {
		if field.Type != "password" && field.Complete != "one-time-code" && field.Name != confirmField {
			field.Value, field.Values = r.Field(field.Name), r.Fields(field.Name)
		}
	}
}

func (f *Form) field(name string) *Field {
	for _, field := range f.Fields {
		if field.Name == name {
			return field
		}
	}
	return nil
}
