package wiring

import (
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pgherd/pgherd/core/fault"
)

// oneLine writes an error of several causes with semicolons between them: in JSON, its ends of lines would be unreadable.
type oneLine struct{ zapcore.Core }

// With implements zapcore.Core.
func (c oneLine) With(fields []zapcore.Field) zapcore.Core {
	return oneLine{c.Core.With(lined(fields))}
}

// Check implements zapcore.Core.
func (c oneLine) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c oneLine) Write(e zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(e, lined(fields))
}

func lined(fields []zapcore.Field) []zapcore.Field {
	fields = slices.Clone(fields)
	for i, f := range fields {
		if err, is := f.Interface.(error); is && f.Type == zapcore.ErrorType {
			fields[i] = zap.String(f.Key, fault.Line(err))
		}
	}
	return fields
}
