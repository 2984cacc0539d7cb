package settings

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Authorities returns the certificates in the file that a flag names. An error names the setting and the file, and says what to
// do.
func Authorities(flag, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = errors.New("it holds no certificate in PEM")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w; give a file with the authority's certificate in PEM, which this program's user may read, "+
			"or leave the setting out", Flag(flag), path, err)
	}
	return text, nil
}
