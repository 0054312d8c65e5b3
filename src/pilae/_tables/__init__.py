"""Files of mixed columns: read as they are written, or refused in a sentence; and which column is what.

Only the command line uses it; what a column becomes is the estimator's (`_data.tables`). Files may be damaged or
hostile. Whatever is wrong with one is a ValueError of one sentence. A row that is not as long as the header is an error
and never filled up, cut or shifted; nothing larger than the file's own bytes warrant is put into memory; no code in a
file is run.
"""
