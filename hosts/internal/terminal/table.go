package terminal

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const (
	// columnWidth is the most that a column takes of a line which it shares with others: a UUID has 36 characters.
	columnWidth = 36
	// nameWidth is that of the longest name which the service makes: restore_<UUID>, and logins with a hexadecimal ID. One is not
	// broken, or nobody could copy it.
	nameWidth = 44
	// gap is what is left free between two columns, and before what is indented.
	gap = 2
)

// Paper is where text for people is written.
type Paper struct {
	To     *bytes.Buffer
	Margin int
	Width  int // within the margin
	// Paint colours a piece of a cell, given its entry and its column; nil for no colour. The names are entry 0.
	Paint func(entry, column int, text string) string
}

// Indented is the paper with a wider margin.
func (p Paper) Indented() Paper {
	p.Margin, p.Width = p.Margin+gap, p.Width-gap
	return p
}

// Line writes a line, however long it is.
func (p Paper) Line(text string) {
	p.To.WriteString(strings.TrimRight(strings.Repeat(" ", p.Margin)+text, " ") + "\n")
}

// NoValue is what people are shown where there is no value.
const NoValue = "-"

// Table writes lines of cells, the first of which are the names. Columns that do not fit the width come below the others,
// indented, so that an entry takes several lines; one without a value is left out. A cell that is wider than its column is
// broken: what is long in one entry makes no other one longer.
func (p Paper) Table(lines [][]string) {
	widths, words := make([]int, len(lines[0])), make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], Columns(c))
			for word := range strings.FieldsSeq(c) {
				words[i] = max(words[i], Columns(word))
			}
		}
	}
	folded := fold(widths, words, p.Width)
	for i, cells := range lines {
		for n, part := range folded {
			switch {
			case n == 0:
				p.cells(i, cells, part)
			case i == 0 || slices.ContainsFunc(part, func(c column) bool { return cells[c.at] != NoValue }):
				p.Indented().cells(i, cells, part)
			}
		}
	}
}

// cells writes some columns of an entry.
func (p Paper) cells(entry int, cells []string, part []column) {
	pieces, most := make([][]string, len(part)), 0
	for i, c := range part {
		pieces[i] = broken(cells[c.at], c.width)
		most = max(most, len(pieces[i]))
	}
	for n := range most {
		var text strings.Builder
		for i, c := range part {
			piece := ""
			if n < len(pieces[i]) {
				piece = pieces[i][n]
			}
			space := strings.Repeat(" ", max(0, c.width+gap-Columns(piece)))
			if p.Paint != nil && piece != "" {
				piece = p.Paint(entry, c.at, piece)
			}
			text.WriteString(piece + space)
		}
		p.Line(text.String())
	}
}

// column is one of a table: its place in an entry, and how wide it is.
type column struct{ at, width int }

// fold deals out columns, in their order, over lines of at most so many columns of the terminal. Where all do not fit one line,
// the last of each takes what the others leave it; these are no wider than columnWidth, but where they have a name as wide as
// nameWidth. words are the widths of the longest words.
func fold(widths, words []int, most int) (lines [][]column) {
	if line, fits := oneLine(widths, most); fits {
		return [][]column{line}
	}
	used := 0
	for i, wide := range widths {
		c := column{i, min(wide, columnWidth)}
		if words[i] <= min(nameWidth, most-gap) {
			c.width = max(c.width, words[i])
		}
		if len(lines) == 0 || used+gap+c.width > most {
			lines, used = append(lines, nil), -gap
			if len(lines) == 2 {
				most -= gap // all but the first line are indented
			}
		}
		last := len(lines) - 1
		lines[last], used = append(lines[last], c), used+gap+c.width
	}
	for n, line := range lines {
		left, last := most, len(line)-1
		if n == 0 && len(lines) > 1 {
			left += gap
		}
		for _, c := range line[:last] {
			left -= c.width + gap
		}
		line[last].width = min(widths[line[last].at], left)
	}
	return lines
}

func oneLine(widths []int, most int) (line []column, fits bool) {
	used := -gap
	for i, wide := range widths {
		line, used = append(line, column{i, wide}), used+gap+wide
	}
	return line, used <= most
}

// broken cuts a text into pieces of at most so many columns, at spaces where it has some.
func broken(text string, most int) (pieces []string) {
	for Columns(text) > most {
		end, space, used := 0, 0, 0
		for at, r := range text {
			if used += columnsOf(r); used > most {
				break
			}
			if end = at + len(string(r)); r == ' ' {
				space = end
			}
		}
		if space > 0 {
			end = space
		}
		pieces, text = append(pieces, text[:end]), text[end:]
	}
	return append(pieces, text)
}

// Padded is a text with spaces up to so many columns.
func Padded(text string, to int) string { return text + strings.Repeat(" ", max(0, to-Columns(text))) }

// Columns is how wide a terminal shows a text.
func Columns(text string) (n int) {
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}
