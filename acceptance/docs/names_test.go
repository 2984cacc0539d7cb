package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Go takes no module with a file that another system could not have: nobody could install svc by "go install".
var (
	portable = regexp.MustCompile(`^[\w!#$%&()+,.=@\[\]^{}~ -]+$`)
	devices  = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$`)
)

func TestEverySystemCanHaveTheFiles(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, file := range files(t) {
		seen++
		for _, name := range strings.Split(strings.TrimPrefix(filepath.ToSlash(file), root+"/"), "/") {
			if !portable.MatchString(name) || devices.MatchString(name) || strings.HasSuffix(name, ".") {
				t.Errorf("%s: Go's modules have no file %q", file, name)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("it has looked at %d files", seen)
	}
}
