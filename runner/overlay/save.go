package overlay

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Save stores the manifest's objects that aren't stored yet and returns the
// hash that Load takes. The contents were stored by Scan. One lineage of
// manifests must always be saved to the same Bodies. A nil manifest can't be
// saved.
func (m *Manifest) Save(ctx context.Context, b Bodies) (Hash, error) {
	q := newBatch(b)
	var fresh []*object
	if err := m.root.sub.save(ctx, q, &fresh); err != nil {
		return Hash{}, fmt.Errorf("cannot save checkpoint: %w", err)
	}
	magic := manifestMagic
	if m.base != nil {
		magic = recordedMagic
		if err := m.base.root.sub.save(ctx, q, &fresh); err != nil {
			return Hash{}, fmt.Errorf("cannot save what the project had: %w", err)
		}
	}
	sub, _ := m.root.sub.known()
	body := binary.AppendUvarint([]byte(magic), uint64(m.Len()))
	body = binary.AppendUvarint(body, uint64(m.Bytes()))
	body = appendEntry(body, &m.root.Entry, sub)
	if m.base != nil {
		sub, _ = m.base.root.sub.known()
		body = binary.AppendUvarint(body, m.base.steps)
		body = appendEntry(body, &m.base.root.Entry, sub)
	}
	h := hashOf(body)
	if err := q.add(ctx, h, body); err != nil {
		return Hash{}, fmt.Errorf("cannot save checkpoint: %w", err)
	}
	if err := q.flush(ctx); err != nil {
		return Hash{}, fmt.Errorf("cannot save checkpoint: %w", err)
	}
	for _, o := range fresh {
		h, _ := o.known()
		o.set(h, true)
	}
	return h, nil
}

// save queues what is below d and then d. Objects queued go to fresh.
func (d *dir) save(ctx context.Context, q *batch, fresh *[]*object) error {
	if _, saved := d.known(); saved {
		return nil
	}
	put := func(o *object, body []byte) error {
		h := hashOf(body)
		o.set(h, false)
		*fresh = append(*fresh, o)
		return q.add(ctx, h, body)
	}
	hashes := make([]Hash, 0, len(d.pages))
	for _, p := range d.pages {
		if h, saved := p.known(); saved {
			hashes = append(hashes, h)
			continue
		}
		body := binary.AppendUvarint([]byte(pageMagic), uint64(len(p.nodes)))
		for _, n := range p.nodes {
			var sub Hash
			if n.sub != nil {
				if err := n.sub.save(ctx, q, fresh); err != nil {
					return err
				}
				sub, _ = n.sub.known()
			}
			body = appendEntry(body, &n.Entry, sub)
		}
		if err := put(&p.object, body); err != nil {
			return err
		}
		h, _ := p.known()
		hashes = append(hashes, h)
	}
	if len(d.pages) == 1 { // the page stands for the directory
		d.set(hashes[0], false)
		*fresh = append(*fresh, &d.object)
		return nil
	}
	body := binary.AppendUvarint([]byte(indexMagic), uint64(len(hashes)))
	for _, h := range hashes {
		body = append(body, h[:]...)
	}
	return put(&d.object, body)
}
