package engine

// ReadRowAt reads len(p) bytes at an offset of the file of a row, as io.ReaderAt does. The caller
// holds a snapshot that lists the row. Unlike Snapshot.Open it leaves nothing to close, which suits
// readers that outlive one snapshot and read a page now and then.
func (e *Engine) ReadRowAt(row *FileRow, p []byte, off int64) (int, error) {
	f, err := e.handles.open(row)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	return f.ReadAt(p, off)
}

// ReadAt reads back what was written, while the file is open for writing.
func (p *PendingFile) ReadAt(b []byte, off int64) (int, error) {
	if p.state != pendingOpen {
		return 0, errPendingUsed
	}
	return p.file.ReadAt(b, off)
}
