package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

const (
	page       = "docs/develop/fuzzing.md"
	figureFile = "acceptance/fuzz/figures.txt"
)

const head = `# What is fuzzed

Generated from the comments of the fuzz targets by "make generate". Their corpora, and what they have found, stand in them or in
testdata; every run of the tests tries these. "make fuzz FUZZTIME=1h" looks for new inputs, with each target for so long. One that
has no figures in its line was not run like that.

| target | what it holds | last search |
| - | - | - |
`

// TestGoldenPage also holds that each target says what it holds.
func TestGoldenPage(t *testing.T) {
	t.Chdir("../..")
	lines := check.Must(kept(figureFile))(t)
	var text strings.Builder
	text.WriteString(head)
	for _, of := range check.Must(targets(t.Context()))(t) {
		_, did, _ := strings.Cut(strings.TrimSpace(lines[of.String()]), ": ")
		name := "Fuzz" + strings.TrimPrefix(strings.TrimPrefix(of.Name, searching), "Fuzz")
		file, holds := holds(t, of.Package, name)
		fmt.Fprintf(&text, "| [%s](../../%s) | %s | %s |\n", strings.TrimPrefix(of.Package, "./")+"."+name, file, holds, did)
	}
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		check.NoError(t, os.WriteFile(page, []byte(text.String()), 0o644))
	}
	if have, err := os.ReadFile(page); err != nil || string(have) != text.String() {
		t.Errorf("%s does not follow from the fuzz targets any more; run make generate (%v)", page, err)
	}
}

// holds is the comment of a target, in one line, and the file that it is in.
func holds(t *testing.T, in, target string) (file, comment string) {
	t.Helper()
	for _, file := range check.Must(filepath.Glob(filepath.Join(in, "*_test.go")))(t) {
		parsed := check.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Name.Name != target {
				continue
			}
			comment := strings.Join(strings.Fields(f.Doc.Text()), " ")
			if comment == "" {
				t.Errorf("%s of %s has no comment that says what it holds", target, file)
			}
			return filepath.ToSlash(file), strings.ReplaceAll(comment, "|", `\|`)
		}
	}
	t.Errorf("%s has no %s", in, target)
	return "", ""
}
