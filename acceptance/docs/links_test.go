// Package docs checks what the pages of the documentation have in common.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

const root = "../.."

// kinds are the names' ends of files that can name a page. Those without one are the Makefile and its like.
var kinds = []string{".md", ".go", ".service", ".yml", ".cfg", ".sh", ".txtar", ""}

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]+`")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	inText  = regexp.MustCompile(`\bdocs/[\w/-]+\.(?:md|sh|yml|cfg)\b`)
)

// TestLinksLeadSomewhere follows each link of each page, with its anchor, and looks for each page that a file names as docs/....
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := 0
	for _, file := range sources(t) {
		text := contents(t, file)
		for _, name := range inText.FindAllString(text, -1) {
			if !there(filepath.Join(root, name)) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		if filepath.Ext(file) != ".md" || filepath.Base(file) == "head.md" { // Which is the beginning of docs/use/svc.md.
			continue
		}
		pages++
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if problem := follow(t, file, found[1]); problem != "" {
				t.Errorf("%s: the link %s %s", file, found[1], problem)
			}
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages were found", pages)
	}
}

// sources returns the text files that can name a page. What lies in hidden folders was not written here.
func sources(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(files(t), func(file string) bool { return !slices.Contains(kinds, filepath.Ext(file)) })
}

// files are those of the repository, but for what is hidden.
func files(t *testing.T) (list []string) {
	t.Helper()
	check.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.Type().IsRegular():
			list = append(list, file)
		}
		return nil
	}))
	return list
}

// follow says what is wrong with a link of a page, or nothing.
func follow(t *testing.T, page, target string) string {
	t.Helper()
	if strings.Contains(target, "://") {
		return ""
	}
	path, anchor, _ := strings.Cut(target, "#")
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), path)
	}
	switch {
	case !there(file):
		return "leads to no file"
	case anchor != "" && !slices.Contains(anchors(contents(t, file)), anchor):
		return "leads to no heading"
	default:
		return ""
	}
}

// anchors are the names that GitHub gives the headings of a page.
func anchors(page string) (names []string) {
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		var name strings.Builder
		for _, r := range strings.ToLower(found[1]) {
			switch {
			case r == ' ':
				name.WriteByte('-')
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				name.WriteRune(r)
			}
		}
		names = append(names, name.String())
	}
	return names
}

func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func contents(t *testing.T, file string) string {
	t.Helper()
	return string(check.Must(os.ReadFile(file))(t))
}

func TestDeadLinksAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	check.NoError(t, os.WriteFile(page, []byte("# A page, and `code`\n"), 0o600))
	for target, want := range map[string]string{
		"https://example.com/x.md": "", "page.md": "", "page.md#a-page-and-code": "", "#a-page-and-code": "",
		"other.md": "leads to no file", "other.md#x": "leads to no file", "page.md#code": "leads to no heading",
	} {
		if got := follow(t, page, target); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
}
