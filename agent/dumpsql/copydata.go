package dumpsql

import "bytes"

// copyItem returns the next lines of COPY data, or their end. Data is only searched for the line \., never parsed: the
// server does that.
func (r *Reader) copyItem() (Item, error) {
	if !r.fill(1) {
		return Item{}, r.unterminated()
	}
	if !r.midLine {
		if n := r.endOfData(); n > 0 {
			r.inCopy = false
			return r.take(CopyEnd, n, 0), nil
		}
		if r.err != nil {
			return Item{}, r.err
		}
	}
	return r.take(CopyData, r.dataLength(), 0), nil
}

// endOfData returns the length of the line \. with its line end where it stands at start, and zero where it does not.
func (r *Reader) endOfData() int {
	for i, want := range []byte(`\.`) {
		if c, ok := r.at(i); !ok || c != want {
			return 0
		}
	}
	c, ok := r.at(2)
	switch {
	case !ok && r.err == nil:
		return 2
	case ok && c == '\n':
		return 3
	case ok && c == '\r':
		if c, ok := r.at(3); ok && c == '\n' {
			return 4
		}
	}
	return 0
}

// dataLength is how much of the buffer is certainly data: up to the first line that may be the end of data, else up to the last
// line end, else everything. The caller has checked that the first line is not the end.
func (r *Reader) dataLength() int {
	data := r.buf[r.start:r.end]
	if i := bytes.Index(data, []byte("\n\\.")); i >= 0 {
		r.midLine = false
		return i + 1
	}
	if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
		r.midLine = false
		return i + 1
	}
	r.midLine = true
	return len(data)
}

func (r *Reader) unterminated() error {
	if r.err != nil {
		return r.err
	}
	return ErrUnterminated
}
