package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// identifiers are the names that a tree's code uses, in lower case and as one text.
func identifiers(t *testing.T, roots ...string) string {
	t.Helper()
	seen := map[string]bool{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name, is := n.(*ast.Ident); is {
					seen[strings.ToLower(name.Name)] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for name := range seen {
		all.WriteString(name + "\n")
	}
	return all.String()
}

// The map has every package, and the glossary no word that the code does not use.
func TestTheMapAndTheGlossary(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	areas, glossary, _ := strings.Cut(string(text), "# Glossary")
	for _, root := range []string{".", "controlplane"} {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && !regexp.MustCompile(`\b`+e.Name()+`\b`).MatchString(areas) {
				t.Errorf("%s is not in the map", e.Name())
			}
		}
	}
	names, before := identifiers(t, ".", "../ports", "../agent"), ""
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) `).FindAllStringSubmatch(glossary, -1) {
		word := line[1]
		if !strings.Contains(names, word) {
			t.Errorf("%s is in the glossary, and no name has it", word)
		}
		if word <= before {
			t.Errorf("%s stands after %s", word, before)
		}
		before = word
	}
	if before == "" {
		t.Error("the glossary has no words")
	}
}
