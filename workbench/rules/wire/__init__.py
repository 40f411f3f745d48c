"""Data on the wire: JSON that is safe to store and send, its schemas, cursors of lists, messages of the WebSocket
protocol.
"""
